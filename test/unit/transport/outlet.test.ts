import { describe, expect, it } from 'vitest';

import { createFlushQueue, createOutlet } from '../../../src/transport/outlet.js';

/** A sink whose kernel takes bytes when the test says so. */
function handSink() {
  const writes: string[] = [];
  const done: (() => void)[] = [];
  const sink = {
    writableLength: 0,
    write(chunk: Uint8Array, callback: () => void) {
      writes.push(Buffer.from(chunk).toString());
      sink.writableLength += chunk.length;
      done.push(callback);
    },
  };
  const drainTo = (bytes: number) => {
    sink.writableLength = bytes;
    for (const callback of done.splice(0)) callback();
  };
  return { sink, writes, drainTo };
}

const LIMITS = { pauseAboveBytes: 10, resumeBelowBytes: 4 };
const tick = () =>
  new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });

describe('an outlet', () => {
  it('writes once for a tick, in order, promises of that tick included', async () => {
    const { sink, writes } = handSink();
    const queue = createFlushQueue();
    const outlet = createOutlet(sink, LIMITS, queue);
    await Promise.resolve().then(() => {
      outlet.push(Buffer.from('a'));
      void Promise.resolve().then(() => outlet.push(Buffer.from('b')));
      outlet.push(Buffer.from('c'));
    });
    await tick();
    expect(writes).toEqual(['acb']);
  });

  it('pauses above its bound and goes on below the lower one', async () => {
    const { sink, drainTo } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    expect(outlet.ready()).toBeUndefined();
    outlet.push(Buffer.from('0123456789!'));
    outlet.flush();
    expect(outlet.paused).toBe(true);
    let resumed = false;
    const waiting = outlet.ready()?.then(() => (resumed = true));
    drainTo(5);
    await tick();
    expect(resumed).toBe(false);
    outlet.push(Buffer.from('x'));
    outlet.flush();
    drainTo(0);
    await waiting;
    expect(outlet.ready()).toBeUndefined();
    expect(outlet.drainedBytes).toBe(12);
  });

  it('wakes who waits, and forgets what is queued, when it is closed', async () => {
    const { sink, writes } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    outlet.push(Buffer.from('0123456789!'));
    outlet.flush();
    const waiting = outlet.ready();
    outlet.push(Buffer.from('lost'));
    outlet.close();
    await waiting;
    outlet.push(Buffer.from('lost too'));
    await tick();
    expect(writes).toEqual(['0123456789!']);
    expect(outlet.unsentBytes).toBe(0);
  });
});
