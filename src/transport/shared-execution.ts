import type { Caller } from '../access/caller.js';
import type { SourceEvent } from '../graph/stream-field.js';
import type { Answer, Pipeline, Prepared } from './pipeline.js';

/**
 * Executes and serialises an event once for all subscribers of a group: equal document, equal variables but for the
 * place where they began, equal authorisation class. Results hang on the event's own shared object and go with it.
 */
export interface SubscriberGroup {
  readonly prepared: Prepared;
  /** Of whoever came first: equal class, so equal rights. */
  readonly caller: Caller;
  members: number;
}

export interface SharedExecution {
  join(prepared: Prepared, caller: Caller): SubscriberGroup;
  leave(group: SubscriberGroup): void;
  /** The JSON of the event's answer, as UTF-8. */
  payload(group: SubscriberGroup, caller: Caller, event: SourceEvent): Buffer | Promise<Buffer>;
  readonly groups: number;
}

type Variants = Map<string, Buffer | Promise<Buffer>>;

export function createSharedExecution(pipeline: Pipeline, onExecuted: () => void): SharedExecution {
  const groups = new Map<string, SubscriberGroup>();
  const keys = new WeakMap<SubscriberGroup, string>();
  const results = new WeakMap<object, Map<SubscriberGroup, Variants>>();

  function execute(group: SubscriberGroup, caller: Caller, event: SourceEvent): Buffer | Promise<Buffer> {
    onExecuted();
    const answer = pipeline.runEvent(group.prepared, caller, event);
    return answer instanceof Promise ? answer.then(serialized) : serialized(answer);
  }

  return {
    join(prepared, caller) {
      const key = pipeline.shareKey(prepared, caller);
      let group = groups.get(key);
      if (group === undefined) {
        group = { prepared, caller, members: 0 };
        groups.set(key, group);
        keys.set(group, key);
      }
      group.members += 1;
      return group;
    },
    leave(group) {
      group.members -= 1;
      const key = keys.get(group);
      // The last one out: a later equal subscriber makes a new group, which shares nothing with this one's results.
      if (group.members === 0 && key !== undefined) groups.delete(key);
    },
    payload(group, caller, event) {
      if (event.share === null) return execute(group, caller, event);
      const ofEvent = results.get(event.share) ?? new Map<SubscriberGroup, Variants>();
      const variants = ofEvent.get(group) ?? new Map<string, Buffer | Promise<Buffer>>();
      const known = variants.get(event.variant);
      if (known !== undefined) return known;
      results.set(event.share, ofEvent.set(group, variants));
      const made = execute(group, group.caller, event);
      variants.set(event.variant, made);
      // Whoever comes after the execution gets the bytes, not a promise of them.
      if (made instanceof Promise) {
        const keep = (bytes: Buffer) => void variants.set(event.variant, bytes);
        // A failure is told to each of those who wait for it.
        made.then(keep, () => undefined);
      }
      return made;
    },
    get groups() {
      return groups.size;
    },
  };
}

function serialized(answer: Answer): Buffer {
  return Buffer.from(JSON.stringify(answer));
}
