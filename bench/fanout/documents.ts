/** What subscribers ask for: five documents, and as many groups as wanted, each of which gets another text. */
const FIELDS = [
  'cursor deployment { id status { phase } }',
  'cursor to deployment { id version }',
  'cursor from to reason deployment { id name status { phase } }',
  'cursor at to version deployment { id namespace name app }',
  'cursor at from to message actor deployment { id labels status { phase summary } }',
];

/** No two of them give the same payload, so nobody can send one to two groups. `timed`: each tells when it happened. */
export function documentsOf(groups: number, timed = false): string[] {
  const more = timed ? 'at ' : '';
  return Array.from({ length: groups }, (_, group) => {
    const alias = group < FIELDS.length ? '' : `g${group}: `;
    return `subscription { ${alias}deploymentPhaseChanged { ${more}${FIELDS[group % FIELDS.length]} } }`;
  });
}
