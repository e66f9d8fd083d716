/** A page of a Relay connection, as far as walking it needs. */
export interface ConnectionPage<Node> {
  readonly nodes: readonly Node[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor?: string | null | undefined };
  /** Where the log stood when this page was read. */
  readonly asOf?: string | null | undefined;
}

export interface PaginatedNodes<Node> extends AsyncIterable<Node> {
  /**
   * The `asOf` of the FIRST page, once it was read: a watch after it misses nothing that happened since, while later
   * pages were read. Null if the document does not select it.
   */
  readonly asOf: string | null;
}

/**
 * The nodes of all pages, read one page ahead of nothing: the next page is asked for when the last node was taken.
 *
 *     const list = paginate((after) => client.query(DeploymentsDocument, { after }).then((data) => data.deployments));
 *     for await (const deployment of list) …
 */
export function paginate<Node>(
  readPage: (after: string | null) => Promise<ConnectionPage<Node>>,
): PaginatedNodes<Node> {
  let asOf: string | null = null;
  return {
    get asOf() {
      return asOf;
    },
    async *[Symbol.asyncIterator]() {
      let after: string | null = null;
      for (let first = true; ; first = false) {
        const page: ConnectionPage<Node> = await readPage(after);
        if (first) asOf = page.asOf ?? null;
        yield* page.nodes;
        const end = page.pageInfo.endCursor ?? null;
        // A server that says "more" without moving on would keep us for ever.
        if (!page.pageInfo.hasNextPage || end === null || end === after) return;
        after = end;
      }
    },
  };
}
