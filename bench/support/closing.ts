/** What a run has to end, whatever happens: last made, first ended. */
export class Closing {
  readonly #ends: (() => Promise<unknown> | void)[] = [];
  #ended: Promise<void> | undefined;

  add(end: () => Promise<unknown> | void): void {
    this.#ends.push(end);
  }

  /** A second call joins the first. */
  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    for (let end = this.#ends.pop(); end; end = this.#ends.pop()) {
      try {
        await end();
      } catch (error) {
        process.stderr.write(`Ending a part failed: ${String(error)}\n`);
      }
    }
  }
}
