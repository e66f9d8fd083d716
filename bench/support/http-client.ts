/**
 * An HTTP/1.1 client that costs little: one keep-alive socket, one request at a time, answers with `content-length`
 * only. A general client would take as much CPU as the server that it is to measure, on the same cores.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const TIMEOUT_MS = 20_000;
const HEAD_END = '\r\n\r\n';

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

export class HttpClient {
  readonly #socket: Socket;
  readonly #head: string;
  #received: Buffer = Buffer.alloc(0);
  #gone: Error | undefined;
  #waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket, head: string) {
    this.#socket = socket;
    this.#head = head;
    socket.on('data', (chunk) => this.#take(chunk));
    const gone = (error?: Error) => {
      this.#gone ??= error ?? new Error('the server closed the connection');
      this.#waiting?.reject(this.#gone);
    };
    socket.setTimeout(TIMEOUT_MS, () => {
      if (this.#waiting) socket.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`));
    });
    socket.on('error', gone);
    socket.on('close', () => gone());
  }

  /** `url` with the path that every request goes to. */
  static async open(url: string): Promise<HttpClient> {
    const { hostname, port, host, pathname } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new HttpClient(
      socket,
      `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\naccept: application/json\r\ncontent-type: application/json\r\ncontent-length: `,
    );
  }

  post(body: string): Promise<Answer> {
    if (this.#gone) return Promise.reject(this.#gone);
    if (this.#waiting) return Promise.reject(new Error('one request at a time'));
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(`${this.#head}${Buffer.byteLength(body)}${HEAD_END}${body}`);
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (!length) throw new Error(`an answer without content-length: ${head}`);
    const bodyStart = headEnd + HEAD_END.length;
    const bodyEnd = bodyStart + Number(length[1]);
    if (this.#received.length < bodyEnd) return;
    const body = this.#received.subarray(bodyStart, bodyEnd);
    this.#received = Buffer.alloc(0);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }
}

/** A GraphQL answer without errors, or a throw that shows it. */
export async function operate(client: HttpClient, body: string): Promise<Buffer> {
  const answer = await client.post(body);
  if (answer.status !== 200 || answer.body.includes('"errors"')) {
    throw new Error(`answered ${answer.status}: ${answer.body.toString().slice(0, 1_000)}`);
  }
  return answer.body;
}
