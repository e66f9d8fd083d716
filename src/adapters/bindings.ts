import type { Outputs } from './contract.js';

/** `${resource.output}`; a doubled dollar sign, `$${`, stands for a plain `${`. */
const BINDING = /\$\$\{|\$\{([^}]*)\}/g;
const REFERENCE = /^([a-z0-9-]+)\.([A-Za-z0-9_.-]+)$/;

/** What is wrong with the bindings in a text, or undefined: their form, and that they name what is required. */
export function bindingProblem(text: string, requires: readonly string[]): string | undefined {
  for (const [whole, reference] of text.matchAll(BINDING)) {
    if (reference === undefined) continue;
    const resource = REFERENCE.exec(reference)?.[1];
    if (resource === undefined) {
      return `has \`${whole.slice(0, 80)}\`, which is not of the form \`\${resource.output}\`; \`$\${\` stands for a plain \`\${\``;
    }
    if (!requires.includes(resource)) {
      return `names \`${resource}\` in \`${whole.slice(0, 80)}\`, which is not in the resource's \`requires\``;
    }
  }
  return undefined;
}

export class UnknownOutput extends Error {
  override readonly name = 'UnknownOutput';
}

/** The text with every binding replaced. Throws UnknownOutput where a resource has no such output. */
export function bound(text: string, outputs: ReadonlyMap<string, Outputs>): string {
  return text.replace(BINDING, (whole, reference: string | undefined) => {
    if (reference === undefined) return '${';
    const [, resource = '', output = ''] = REFERENCE.exec(reference) ?? [];
    const known = outputs.get(resource);
    const value = known !== undefined && Object.hasOwn(known, output) ? known[output] : undefined;
    if (value !== undefined) return value;
    const has = Object.keys(known ?? {}).join('`, `');
    throw new UnknownOutput(
      `\`${whole.slice(0, 80)}\`: \`${resource}\` has no such output${has === '' ? '' : `; it has \`${has}\``}`,
    );
  });
}
