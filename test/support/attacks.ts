import { getIntrospectionQuery } from 'graphql';

/**
 * Documents that an attacker sends, and how it is told that one succeeded. Where they are graphql-cop's, they carry its
 * names; the others are from the bars of the streams. They ask the graph of the transport tests.
 */
export interface DocumentAttack {
  readonly name: string;
  readonly query: string;
  /** Whether this answer is what the attacker wanted. */
  succeeded(answer: AttackAnswer): boolean;
  /** Offered to everybody on purpose where introspection is on. */
  readonly byIntrospection?: true;
}

export interface AttackAnswer {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: Record<string, unknown> }[];
}

const times = (count: number, make: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => make(n)).join(' ');
const answered = ({ data }: AttackAnswer) => data !== undefined && data !== null;
const nested = (depth: number): string => (depth === 0 ? 'version' : `self { ${nested(depth - 1)} }`);

export const DOCUMENT_ATTACKS: readonly DocumentAttack[] = [
  {
    name: 'alias overloading',
    query: `query cop { ${times(101, (n) => `alias${n}: __typename`)} }`,
    succeeded: answered,
  },
  {
    name: 'directive overloading',
    query: `query cop { __typename ${'@aa'.repeat(10)} }`,
    succeeded: ({ errors }) => (errors?.length ?? 0) >= 10,
  },
  {
    name: 'circular introspection',
    query: `query cop { __schema { types { ${times(4, () => 'fields { type {')} name ${'} }'.repeat(4)} } } }`,
    succeeded: answered,
  },
  {
    name: 'field duplication',
    query: `query cop { ${times(500, () => '__typename')} }`,
    succeeded: answered,
  },
  {
    name: 'field suggestions',
    query: 'query cop { __schema { directive } }',
    succeeded: ({ errors }) => (errors ?? []).some(({ message }) => /did you mean/i.test(message)),
    byIntrospection: true,
  },
  { name: 'introspection', query: getIntrospectionQuery(), succeeded: answered, byIntrospection: true },
  {
    name: 'unhandled error',
    query: 'qwerty cop { abc }',
    succeeded: ({ errors }) =>
      (errors ?? []).some(({ extensions = {} }) => 'exception' in extensions || 'stacktrace' in extensions),
  },
  {
    name: 'trace mode',
    query: 'query cop { __typename }',
    succeeded: (answer) =>
      'extensions' in answer || (answer.errors ?? []).some(({ extensions = {} }) => 'tracing' in extensions),
  },
  { name: 'a deep document', query: `{ serverInfo { ${nested(40)} } }`, succeeded: answered },
  {
    name: 'a document that is deep by its fragments',
    query: `{ serverInfo { ...F0 } } ${times(40, (n) => `fragment F${n} on ServerInfo { self { ${n < 39 ? `...F${n + 1}` : 'version'} } }`)}`,
    succeeded: answered,
  },
  {
    name: 'fragments that double thirty times',
    query: `{ ...D0 } ${times(30, (n) => `fragment D${n} on Query { a${n}: head ${n < 29 ? `...D${n + 1} ... { ...D${n + 1} }` : ''} }`)}`,
    succeeded: answered,
  },
  {
    name: 'fragments in a circle',
    query: '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
    succeeded: answered,
  },
  {
    name: 'many tokens',
    query: `{ nodes(ids: [${times(3_000, () => '"a"')}]) { id } }`,
    succeeded: answered,
  },
  {
    name: 'many directives',
    query: `{ ${times(25, () => 'head @include(if: true)')} }`,
    succeeded: answered,
  },
  {
    name: 'a masked fault',
    query: '{ node(id: "1") { broken leaking } }',
    succeeded: (answer) => JSON.stringify(answer).includes('hunter2'),
  },
];
