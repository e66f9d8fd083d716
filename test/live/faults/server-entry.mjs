/**
 * A server like any other, from `dist/`, that its parent may interrupt: at a failpoint, or by moving its clock. It is told
 * over IPC what to do; nothing else could tell it.
 */
// By a name that tools do not follow: there is no `dist/` before the first build.
const { runServer } = await import(new URL('../../../dist/main.js', import.meta.url).href);

/** @type {Map<string, { action: 'KILL' | 'STALL' | 'THROW', skip: number, times: number, ms: number }>} */
const armed = new Map();
let offsetMs = 0;

const failpoints = {
  async reach(point) {
    const order = armed.get(point);
    if (!order) return;
    if (order.skip > 0) {
      order.skip -= 1;
      return;
    }
    order.times -= 1;
    if (order.times <= 0) armed.delete(point);
    await told({ hit: point });
    if (order.action === 'KILL') process.kill(process.pid, 'SIGKILL');
    if (order.action === 'THROW') throw new Error(`a failpoint threw: ${point}`);
    await new Promise((resolve) => {
      setTimeout(resolve, order.ms);
    });
  },
};

/** Resolves when the parent's end of the pipe has it, so that what is said before a kill is heard. */
function told(message) {
  return new Promise((resolve) => {
    process.send?.(message, () => resolve(undefined));
  });
}

process.on('message', (message) => {
  if (message.arm) armed.set(message.arm.point, { ...message.arm });
  if (message.disarm) armed.clear();
  if (message.jumpMs !== undefined) offsetMs += message.jumpMs;
  void told({ done: message.id });
});
// A parent that is gone needs no server.
process.on('disconnect', () => process.exit(1));

await runServer({
  failpoints,
  clock: {
    now: () => new Date(Date.now() + offsetMs),
    monotonicMs: () => performance.now(),
    after(ms, run) {
      const timer = setTimeout(run, ms);
      timer.unref();
      return () => clearTimeout(timer);
    },
  },
});
