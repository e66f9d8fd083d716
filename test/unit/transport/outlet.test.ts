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

function countingReader() {
  const reader = { woken: 0, wake: () => void (reader.woken += 1) };
  return reader;
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

  it('writes within a tick that brings more than its bound', async () => {
    const { sink, writes } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    for (const chunk of ['01234', '56789', '!', 'next']) outlet.push(Buffer.from(chunk));
    expect(writes).toEqual(['0123456789!']);
    expect(outlet.paused).toBe(true);
    await tick();
    expect(writes).toEqual(['0123456789!', 'next']);
  });

  it('pauses above its bound and goes on below the lower one', async () => {
    const { sink, drainTo } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    const reader = countingReader();
    expect(outlet.ready(reader)).toBe(true);
    outlet.push(Buffer.from('0123456789!'));
    outlet.flush();
    expect(outlet.paused).toBe(true);
    expect(outlet.ready(reader)).toBe(false);
    drainTo(5);
    expect(reader.woken).toBe(0);
    outlet.push(Buffer.from('x'));
    outlet.flush();
    drainTo(0);
    await tick();
    expect(reader.woken).toBe(1);
    expect(outlet.ready(reader)).toBe(true);
    expect(outlet.drainedBytes).toBe(12);
  });

  it('wakes no reader that it was told to forget', () => {
    const { sink, drainTo } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    const [gone, waiting] = [countingReader(), countingReader()];
    outlet.push(Buffer.from('0123456789!'));
    for (const reader of [gone, waiting]) expect(outlet.ready(reader)).toBe(false);
    outlet.forget(gone);
    drainTo(0);
    expect([gone.woken, waiting.woken]).toEqual([0, 1]);
  });

  it('lets those whom it wakes go on only until it is full again', () => {
    const { sink, drainTo } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    const sent: string[] = [];
    const sender = (name: string) => ({
      wake() {
        while (outlet.ready(this)) {
          sent.push(name);
          outlet.push(Buffer.from('01234567'));
        }
      },
    });
    outlet.push(Buffer.from('0123456789!'));
    for (const name of ['a', 'b']) sender(name).wake();
    drainTo(0);
    expect(sent).toEqual(['a', 'a']);
    drainTo(0);
    expect(sent).toEqual(['a', 'a', 'b', 'b']);
  });

  it('wakes who waits, and forgets what is queued, when it is closed', async () => {
    const { sink, writes } = handSink();
    const outlet = createOutlet(sink, LIMITS, createFlushQueue());
    const reader = countingReader();
    outlet.push(Buffer.from('0123456789!'));
    expect(outlet.ready(reader)).toBe(false);
    outlet.push(Buffer.from('lost'));
    outlet.close();
    expect(reader.woken).toBe(1);
    outlet.push(Buffer.from('lost too'));
    await tick();
    expect(writes).toEqual(['0123456789!']);
    expect(outlet.unsentBytes).toBe(0);
  });
});
