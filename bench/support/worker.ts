/**
 * Load generators and raw servers run in processes of their own, so that they compete with what they measure as real
 * clients do, and never for its event loop. A worker module calls `serveWorker(methods)`; `startWorker` runs such a
 * module and calls its methods. A worker ends with its parent.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

// Arguments and results are plain data, copied between processes; each method's own type says what they are.
type Methods<T> = { readonly [K in keyof T]: (argument: never) => Promise<unknown> };
type Argument<F> = F extends (argument: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never[]) => Promise<infer R> ? R : never;

interface Request {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}
interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export interface Worker<T extends Methods<T>> {
  readonly pid: number;
  call<K extends keyof T & string>(method: K, argument: Argument<T[K]>): Promise<Result<T[K]>>;
  stop(): Promise<void>;
}

export function serveWorker<T extends Methods<T>>(methods: T): void {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message) => {
    const { id, method, argument } = message as Request; // sent by `call` below
    const run = methods[method as keyof T]; // as above
    const reply = (answer: Omit<Reply, 'id'>) => process.send?.({ id, ...answer } satisfies Reply);
    run(argument as never).then(
      (value) => reply({ value }),
      (error: unknown) =>
        reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
}

export function startWorker<T extends Methods<T>>(module: URL): Worker<T> {
  const child = fork(fileURLToPath(module), { serialization: 'advanced' });
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let last = 0;
  child.on('message', (message) => {
    const { id, value, error } = message as Reply; // sent by `serveWorker`
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  });
  const exited = once(child, 'exit').then(() => {
    for (const { reject } of waiting.values()) reject(new Error(`${module.pathname} ended`));
  });
  return {
    pid: child.pid ?? -1,
    call<K extends keyof T & string>(method: K, argument: Argument<T[K]>) {
      last += 1;
      const id = last;
      return new Promise<Result<T[K]>>((resolve, reject) => {
        waiting.set(id, { resolve: (value) => resolve(value as Result<T[K]>), reject }); // what that method answered
        child.send({ id, method, argument } satisfies Request);
      });
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
