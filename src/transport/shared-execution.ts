import type { Caller } from '../access/caller.js';
import type { SourceEvent } from '../graph/stream-field.js';
import { Payload } from './frames.js';
import type { Pipeline, Prepared } from './pipeline.js';

/**
 * Executes and serialises an event once for all subscribers of a group: equal document, equal variables but for the
 * place where they began, equal authorisation class. The newest results are kept, within a bound, for those who get the event
 * later: slow readers, and whoever resumes.
 */
export interface SubscriberGroup {
  readonly prepared: Prepared;
  /** Of whoever came first: equal class, so equal rights. */
  readonly caller: Caller;
}

export interface SharedExecution {
  join(prepared: Prepared, caller: Caller): SubscriberGroup;
  leave(group: SubscriberGroup): void;
  /** The event's answer. Rejects what the execution throws. */
  payload(group: SubscriberGroup, caller: Caller, event: SourceEvent): Payload | Promise<Payload>;
  readonly groups: number;
  /** Of the results that are kept. */
  readonly keptBytes: number;
}

export interface SharedExecutionOptions {
  onExecuted(event: SourceEvent): void;
  readonly keepBytes?: number;
}

/** As much as the feed's ring keeps of the changes themselves. */
const KEEP_BYTES = 16 * 1024 * 1024;
const KEEP_EVENTS = 10_000;

class Group implements SubscriberGroup {
  readonly key: string;
  readonly prepared: Prepared;
  readonly caller: Caller;
  members = 0;
  /** All members get the same event one after the other: its result is found without looking. */
  latest: Result | undefined;

  constructor(key: string, prepared: Prepared, caller: Caller) {
    this.key = key;
    this.prepared = prepared;
    this.caller = caller;
  }
}

interface Result {
  readonly share: object;
  readonly variant: string;
  payload: Payload | Promise<Payload>;
}
/** Of one event. */
interface Results {
  readonly byGroup: Map<Group, Result[]>;
  bytes: number;
}

export function createSharedExecution(
  pipeline: Pick<Pipeline, 'shareKey' | 'runEvent'>,
  options: SharedExecutionOptions,
): SharedExecution {
  const { onExecuted, keepBytes = KEEP_BYTES } = options;
  const groups = new Map<string, Group>();
  /** Oldest first. */
  const kept = new Map<object, Results>();
  let keptBytes = 0;

  function execute(group: Group, caller: Caller, event: SourceEvent): Payload | Promise<Payload> {
    onExecuted(event);
    const answer = pipeline.runEvent(group.prepared, caller, event);
    return answer instanceof Promise ? answer.then((late) => new Payload(late)) : new Payload(answer);
  }

  function known(group: Group, { share, variant }: SourceEvent): Result | undefined {
    const { latest } = group;
    if (latest && latest.share === share && latest.variant === variant) return latest;
    const results = share === null ? undefined : kept.get(share);
    return results?.byGroup.get(group)?.find((result) => result.variant === variant);
  }

  function keep(group: Group, result: Result): void {
    group.latest = result;
    const results = kept.get(result.share) ?? { byGroup: new Map<Group, Result[]>(), bytes: 0 };
    kept.set(result.share, results);
    const ofGroup = results.byGroup.get(group);
    if (ofGroup) ofGroup.push(result);
    else results.byGroup.set(group, [result]);
    const { payload } = result;
    if (payload instanceof Payload) return count(result.share, results, payload);
    payload.then(
      (late) => {
        // Whoever comes after the execution gets the bytes, not a promise of them.
        result.payload = late;
        count(result.share, results, late);
      },
      () => undefined, // told to each of those who wait for it
    );
  }

  function count(share: object, results: Results, { bytes }: Payload): void {
    if (kept.get(share) !== results) return;
    results.bytes += bytes;
    keptBytes += bytes;
    for (const [oldest, { bytes: freed }] of kept) {
      if (keptBytes <= keepBytes && kept.size <= KEEP_EVENTS) return;
      kept.delete(oldest);
      keptBytes -= freed;
    }
  }

  return {
    join(prepared, caller) {
      const key = pipeline.shareKey(prepared, caller);
      const group = groups.get(key) ?? new Group(key, prepared, caller);
      groups.set(key, group);
      group.members += 1;
      return group;
    },
    leave(left) {
      const group = left as Group; // every group is made by `join`
      group.members -= 1;
      // The last one out: a later equal subscriber makes a new group, which shares nothing with this one's results.
      if (group.members === 0) groups.delete(group.key);
    },
    payload(of, caller, event) {
      const group = of as Group; // every group is made by `join`
      if (event.share === null) return execute(group, caller, event);
      const result = known(group, event);
      if (result) return result.payload;
      const payload = execute(group, group.caller, event);
      keep(group, { share: event.share, variant: event.variant, payload });
      return payload;
    },
    get groups() {
      return groups.size;
    },
    get keptBytes() {
      return keptBytes;
    },
  };
}
