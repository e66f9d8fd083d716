/**
 * A GraphQL document as text that carries the types of its result and variables. Generated documents
 * (`TypedDocumentString`) are of this shape; a plain string is one whose types are not known.
 */
export interface SlipwayDocument<Result, Variables> {
  toString(): string;
  /** Never called: it only carries the types. */
  __apiType?: ((variables: Variables) => Result) | undefined;
}

/** What follows the document: variables, which may be left out where none is required, then options. */
export type Arguments<Variables, Options> =
  Record<string, never> extends Variables
    ? [variables?: Variables, options?: Options]
    : [variables: Variables, options?: Options];

export interface DocumentFacts {
  readonly text: string;
  readonly operation: 'query' | 'mutation' | 'subscription';
  readonly operationName: string | undefined;
  /** The response key of the first root field: where a subscription's event stands. */
  readonly rootKey: string;
  /** The name of that field in the schema. */
  readonly rootField: string;
  /** Whether the operation declares `$after`, so that it can be resumed by it. */
  readonly takesAfter: boolean;
}

const IGNORED = /"""[\s\S]*?"""|"(?:\\.|[^"\\])*"|#[^\n\r]*/g;
const HEADER = /\b(query|mutation|subscription)\b\s*([A-Za-z_]\w*)?\s*(\((?:[^()]|\([^()]*\))*\))?[^{]*\{/;
const FIELD = /^\s*([A-Za-z_]\w*)\s*(?::\s*([A-Za-z_]\w*))?/;

/**
 * The few facts that the client needs, read from the text: a parser would be most of the client's size. One operation
 * in a document, whose first selection is a field, which is what every subscription looks like.
 */
export function documentFacts(document: SlipwayDocument<unknown, never>): DocumentFacts {
  const text = document.toString();
  // Fragments may stand first; texts and comments may hold anything.
  const bare = text
    .replace(IGNORED, (quoted) => (quoted.startsWith('#') ? '' : '""'))
    .replace(/\bfragment\b[^{]*\{/g, '{');
  const header = HEADER.exec(bare);
  const [matched, operation, operationName, variables] = header ?? [];
  if (!header && !bare.trimStart().startsWith('{')) throw new TypeError('The document holds no operation.');
  const body = header ? bare.slice(header.index + (matched?.length ?? 0)) : bare.slice(bare.indexOf('{') + 1);
  const [, first, second] = FIELD.exec(body) ?? [];
  if (first === undefined) {
    throw new TypeError('The document holds no operation whose first selection is a field.');
  }
  return {
    text,
    operation: operation === 'mutation' || operation === 'subscription' ? operation : 'query',
    operationName,
    rootKey: first,
    rootField: second ?? first,
    takesAfter: /\$after\b/.test(variables ?? ''),
  };
}
