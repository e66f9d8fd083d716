import { setTimeout as delay } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { AdapterDriver, adapterTarget } from '../../support/adapter-driver.js';
import { CHANGES_MAX, COURSE_PHASES, crashCourse, type CrashCourse } from '../../support/crash-course.js';

let course: CrashCourse;

beforeAll(async () => {
  course = await crashCourse();
});

afterAll(async () => {
  expect(await course.end()).toBe(0);
});

describe('a server that is frozen, and woken when another has its work', () => {
  it.each(COURSE_PHASES)(
    'while it %s, after any change that it made, changes nothing more',
    { timeout: 240_000 },
    async (phase) => {
      let hits = 0;
      for (let change = 1; change <= CHANGES_MAX; change += 1) {
        const driver = await course.begin(phase);
        const frozen = course.startServer(phase === 'removes' ? 'remove' : 'apply', driver.target, {
          change,
          do: 'SIGSTOP',
        });
        const hit = await frozen.hit;
        // A third release, or nothing at all: both must stand.
        const removes = change % 2 === 0;
        driver.next(course.release('v3'));
        if (removes) await course.takeAway(driver);
        else expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
        const before = await course.launchesOf(driver.target);
        frozen.wake();
        const answer = await frozen.answer;
        if (hit) {
          // It may have been at its last step; whatever it says, it said it without a change.
          expect(['blocked', 'done']).toContain(answer?.outcome.kind);
        }
        // Programs that it was just starting look for themselves, and leave.
        await delay(hit ? 100 : 0);
        expect(await course.launchesOf(driver.target), `after change ${change}`).toEqual(before);
        if (!removes) {
          expect(before).toHaveLength(1);
          expect((await driver.observe()).instances.map(({ status }) => status)).toEqual(['READY', 'READY']);
        } else {
          expect(course.host.names(`runs/${driver.target.deploymentId}`)).toEqual([]);
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

describe('several servers on one folder', () => {
  it('leave one program each, of the newest lease, however they overlap', async () => {
    for (let round = 0; round < 10; round += 1) {
      const target = adapterTarget('process', course.release('v1'));
      const servers = [1n, 2n, 3n, 4n].map(
        (fence) =>
          new AdapterDriver(course.host.adapter(), {
            ...target,
            fence,
            attempt: `attempt-${fence}`,
            release: { ...target.release!, resources: course.release(`v${fence}`) },
          }), // has one
      );
      const order = round % 2 === 0 ? servers : [...servers].reverse();
      const answers = await Promise.all(order.map((server) => server.deploy()));
      const last = servers[3]!; // of four
      expect(answers[order.indexOf(last)]?.outcome).toEqual({ kind: 'done' });
      await delay(50);
      const launches = (await course.host.processes()).filter(({ pid, session }) => pid === session);
      expect(launches.map(({ mark }) => mark.resource).sort()).toEqual(['one']);
      expect(launches.map(({ mark }) => mark.fence)).toEqual([4n]);
      await course.takeAway(last);
    }
  });

  it('refuse an older lease, say so, and change nothing', async () => {
    const driver = await course.begin('updates');
    const old = new AdapterDriver(course.host.adapter(), { ...driver.target, fence: 1n });
    driver.with({ fence: 7n });
    await driver.deploy();
    const before = await course.launchesOf(driver.target);
    for (const scope of ['FROZEN', 'LIVE'] as const) {
      expect((await old.apply(scope)).outcome).toMatchObject({ kind: 'blocked', reason: 'Superseded' });
      expect((await old.remove(scope)).outcome).toMatchObject({ kind: 'blocked', reason: 'Superseded' });
    }
    expect(await course.launchesOf(driver.target)).toEqual(before);
    await course.takeAway(driver);
    expect((await old.apply()).outcome).toMatchObject({ kind: 'blocked', reason: 'Superseded' });
    expect(await course.launchesOf(driver.target)).toEqual([]);
  });
});
