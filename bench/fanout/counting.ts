/** What the subscribers of a fan-out have in common: a socket that tells once that it is gone, and not when it was closed here. */
import type { Socket } from 'node:net';

export interface SubscriberEvents {
  /** Each text message, as it came. Only valid during the call. */
  message(text: Buffer): void;
  gone(reason: string): void;
}

export abstract class CountingConnection {
  protected readonly socket: Socket;
  protected readonly events: SubscriberEvents;
  #closed = false;

  protected constructor(socket: Socket, events: SubscriberEvents) {
    this.socket = socket;
    this.events = events;
  }

  close(): void {
    this.#closed = true;
    this.socket.destroy();
  }

  /** From now on, what comes is counted. */
  protected listen(): void {
    this.socket.on('data', (chunk) => this.take(chunk));
    this.socket.on('error', (error) => this.end(error.message));
    this.socket.on('close', () => this.end('closed by the server'));
  }

  protected end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.events.gone(reason);
  }

  protected abstract take(chunk: Buffer): void;
}
