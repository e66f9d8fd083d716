import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  AdapterDriver,
  adapterTarget,
  conditionOf,
  resource,
  statusOf,
} from '../../support/adapter-driver.js';
import { CHANGES_MAX, COURSE_PHASES, crashCourse, type CrashCourse } from '../../support/crash-course.js';
import { freePort, webHealth, webProgram } from '../../support/programs.js';
import { waitFor } from '../../support/wait-for.js';

let course: CrashCourse;

beforeAll(async () => {
  course = await crashCourse();
});

afterAll(async () => {
  expect(await course.end()).toBe(0);
});

describe('a server that is killed', () => {
  it('leaves its programs running, and the next one takes them over as they are', async () => {
    const target = adapterTarget('process', course.release('v1'));
    const server = course.startServer('apply', target);
    expect((await server.answer)?.outcome).toEqual({ kind: 'done' });
    const before = await course.launchesOf(target);
    expect(before).toHaveLength(1);
    const later = new AdapterDriver(course.host.adapter(), { ...target, fence: 2n, attempt: 'second' });
    expect((await later.observe()).instances.map(({ status }) => status)).toEqual(['READY', 'READY']);
    expect((await later.deploy()).outcome).toEqual({ kind: 'done' });
    expect(await course.launchesOf(target)).toEqual(before);
    await course.takeAway(later);
  });

  it('is told afterwards how a program ended while no server was there, and when', async () => {
    const port = await freePort();
    const web = resource({ name: 'web', spec: { command: webProgram(port), health: webHealth(port) } });
    const target = adapterTarget('process', [web]);
    await course.startServer('apply', target).answer;
    const from = new Date();
    await fetch(`http://127.0.0.1:${port}/exit/5`).catch(() => undefined);
    await waitFor(async () => (await course.launchesOf(target)).length === 0, 'the end of the program');
    const later = new AdapterDriver(course.host.adapter(), { ...target, fence: 2n });
    const message = conditionOf(await later.observe(), 'Healthy')?.message ?? '';
    expect(message).toMatch(/`web` ended with exit code 5 at .*; its last line: told to exit/);
    const at = new Date(/at (\S+Z)/.exec(message)?.[1] ?? '');
    expect(at.getTime()).toBeGreaterThan(from.getTime() - 1_000);
    await course.takeAway(later);
  });

  it('is told that a program is gone when nobody survived who could say how', async () => {
    const driver = await course.begin('updates');
    for (const { pid } of await course.host.processes()) process.kill(pid, 'SIGKILL');
    await waitFor(async () => (await course.launchesOf(driver.target)).length === 0, 'their end');
    const answer = await driver.observe();
    expect(statusOf(answer, 'one')).toMatchObject({ status: 'FAILED', error: { code: 'ProcessExited' } });
    await course.takeAway(driver);
  });

  it('does not lose a program whose own shell alone was killed', async () => {
    const driver = await course.begin('updates');
    const shells = (await course.host.processes()).filter(({ pid, session }) => pid === session);
    for (const { pid } of shells) process.kill(pid, 'SIGKILL');
    await waitFor(
      async () => (await course.host.processes()).every(({ pid, session }) => pid !== session),
      'their end',
    );
    const before = await course.launchesOf(driver.target);
    expect(statusOf(await driver.observe(), 'one')).toMatchObject({ status: 'READY' });
    driver.next(course.release('v1'));
    expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
    expect(await course.launchesOf(driver.target)).toEqual(before);
    await course.takeAway(driver);
  });

  it.each(COURSE_PHASES)(
    'while it %s, after any change that it made, leaves what the next one completes',
    { timeout: 180_000 },
    async (phase) => {
      let hits = 0;
      for (let change = 1; change <= CHANGES_MAX; change += 1) {
        const driver = await course.begin(phase);
        const server = course.startServer(phase === 'removes' ? 'remove' : 'apply', driver.target, {
          change,
          do: 'SIGKILL',
        });
        const hit = await server.hit;
        await server.answer;
        driver.with({ fence: driver.target.fence + 1n });
        if (phase !== 'removes') {
          expect((await driver.deploy()).outcome, `after change ${change}`).toEqual({ kind: 'done' });
          expect(await course.launchesOf(driver.target), `after change ${change}`).toHaveLength(1);
        }
        await course.takeAway(driver);
        if (!hit) break;
        hits += 1;
      }
      expect(hits).toBeGreaterThan(5);
      expect(hits).toBeLessThan(CHANGES_MAX);
    },
  );
});
