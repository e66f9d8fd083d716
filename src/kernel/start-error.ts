/**
 * The server cannot start, for a reason that its operator can act on. `main` prints `publicMessage` as one line and
 * exits; anything that is not a `StartError` is a bug and keeps its stack.
 */
export class StartError extends Error {
  override readonly name: string = 'StartError';
  readonly publicMessage: string;

  constructor(publicMessage: string, options?: ErrorOptions) {
    super(publicMessage, options);
    this.publicMessage = publicMessage;
  }
}
