import {
  GraphQLError,
  getArgumentValues,
  isScalarType,
  type ExecutionResult,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';

import { ACTIONS, OPERATIONS, type Action } from '../access/actions.js';
import { mayEver } from '../access/authorise.js';
import type { Caller } from '../access/caller.js';
import type { ContextFactory } from '../graph/context.js';
import { assertAffordable, keptCosts } from '../graph/cost.js';
import { maskError } from '../graph/errors.js';
import { compileOperation, type CompiledOperation } from '../graph/execution/executor.js';
import type { EventSource, SourceEvent, StreamDefinition } from '../graph/stream-field.js';
import type { Clock } from '../kernel/clock.js';
import { canonicalJson } from '../kernel/json.js';
import type { Log } from '../kernel/log.js';
import { readTurns, type ReadTurns } from '../kernel/read-turns.js';
import type { TransportLimits } from './limits.js';
import { planSource, recoded, type OperationKind, type OperationPlan } from './plans.js';
import { refusals } from './refusal.js';
import { documentIdOf, type TrustedDocuments } from './trusted-documents.js';

/**
 * The one way of an operation, whatever it came by: HTTP, an event stream or a socket. Everything that may refuse it
 * is in `prepare`, in this order: trust, size, depth, aliases, directives, validity, kind, rights, variables, cost. A refusal is a
 * list of errors of that operation; nothing here throws, closes or answers.
 */
export interface OperationRequest {
  /** Empty: the document is named by `documentId`. */
  readonly query: string;
  /** `sha256:<hex>` of a trusted document. */
  readonly documentId?: string | undefined;
  readonly operationName?: string | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
}

export interface Prepared {
  readonly plan: OperationPlan;
  /** As they were sent. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** As their types take them, defaults filled in. */
  readonly coerced: Readonly<Record<string, unknown>>;
  readonly cost: number;
}

export type Preparation =
  | { readonly prepared: Prepared; readonly errors?: undefined }
  | { readonly errors: readonly GraphQLFormattedError[]; readonly prepared?: undefined };

/** What leaves the server: masked, ready for JSON. */
export interface Answer {
  readonly data?: unknown;
  readonly errors?: readonly GraphQLFormattedError[];
}

export interface Pipeline {
  /** `allowed`: the kinds that this transport carries. */
  prepare(request: OperationRequest, caller: Caller, allowed: ReadonlySet<OperationKind>): Preparation;
  /** A query or mutation, from start to masked answer. `turns`: if who asked may go away before it comes. */
  run(prepared: Prepared, caller: Caller, turns?: ReadTurns): Promise<Answer>;
  /** Attaches a subscription at once, `after` in place of its own argument if given. Throws what `mask` makes an error of. */
  open(prepared: Prepared, caller: Caller, after?: string): EventSource;
  /** One event of it, with a context of its own: loaders of an older event would answer from the past. */
  runEvent(prepared: Prepared, caller: Caller, event: SourceEvent): Answer | Promise<Answer>;
  /** Equal keys: equal payloads for the same event. */
  shareKey(prepared: Prepared, caller: Caller): string;
  mask(
    errors: readonly unknown[],
    caller: Caller,
    phase: 'validate' | 'execute',
  ): readonly GraphQLFormattedError[];
}

export interface PipelineDeps {
  readonly schema: GraphQLSchema;
  readonly limits: TransportLimits;
  readonly introspection: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly createContext: ContextFactory;
  /** Undefined: any document that is valid may run. */
  readonly trusted?: TrustedDocuments | undefined;
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { schema, limits, log } = deps;
  const plans = planSource(schema, { limits, introspection: deps.introspection });

  const mask: Pipeline['mask'] = (errors, caller, phase) =>
    errors.map((error) => {
      const masked = maskError(error, caller.requestId, phase);
      if (masked.code === 'INTERNAL' || masked.cause !== null) {
        // The only place where a fault of an operation is logged.
        log.error({ requestId: caller.requestId, code: masked.code, err: masked.cause }, 'operation failed');
      }
      return masked.formatted;
    });

  const costOf = keptCosts(schema);
  const compiled = new WeakMap<OperationPlan, CompiledOperation>();
  function compiledOf(plan: OperationPlan): CompiledOperation {
    let operation = compiled.get(plan);
    if (operation === undefined) {
      operation = compileOperation(schema, plan.document, plan.operation);
      compiled.set(plan, operation);
    }
    return operation;
  }

  /** The document to run, if it may: whether it is trusted is asked before it is even parsed. */
  function textOf({ query, documentId }: OperationRequest, caller: Caller): string | GraphQLError {
    const { trusted } = deps;
    if (query === '' && documentId !== undefined) {
      return (
        trusted?.textOf(documentId) ??
        refusals.badRequest('This server knows no document of that `documentId`.')
      );
    }
    if (!trusted || trusted.has(query)) return query;
    if (trusted.mode === 'enforce') return refusals.forbidden('This server runs trusted documents only.');
    const untrusted = documentIdOf(query);
    log.warn(
      { requestId: caller.requestId, documentId: untrusted },
      'a document that is not trusted was run',
    );
    return query;
  }

  function check(
    request: OperationRequest,
    caller: Caller,
    allowed: ReadonlySet<OperationKind>,
  ): Prepared | readonly GraphQLError[] {
    const text = textOf(request, caller);
    if (text instanceof GraphQLError) return [text];
    const found = plans.of(text);
    if (found.errors) return found.errors;
    const plan = chosen(found.operations, request.operationName);
    if (plan instanceof GraphQLError) return [plan];
    if (!allowed.has(plan.kind)) {
      return [refusals.badRequest(`This transport carries no ${plan.kind} operations.`)];
    }
    const refused = forbidden(plan, caller);
    if (refused) return [refused];
    const variables = request.variables ?? {};
    const { coerced, errors } = compiledOf(plan).coerce(variables);
    if (errors) {
      // A scalar's own code (CURSOR_INVALID, say) is kept; the text names the variable.
      return errors.map((error) => recoded(error, error.message, 'BAD_USER_INPUT'));
    }
    // graphql-js would fail in the midst of the execution, as it does for a bug of ours.
    const refusedNull = plan.neverNull.find((name) => coerced[name] === null);
    if (refusedNull !== undefined) return [refusals.nullVariable(refusedNull)];
    // Cost needs the variables: `first` is one of them more often than not.
    const cost = costOf({ document: plan.document, operation: plan.operation, variables });
    assertAffordable(cost, limits.operationCost);
    return { plan, variables, coerced, cost };
  }

  return {
    mask,
    prepare(request, caller, allowed) {
      try {
        const checked = check(request, caller, allowed);
        if ('plan' in checked) return { prepared: checked };
        return { errors: mask(checked, caller, 'execute') };
      } catch (error) {
        return { errors: mask([error], caller, 'execute') };
      }
    },
    async run(prepared, caller, turns = readTurns()) {
      const { kind } = prepared.plan;
      try {
        const result = compiledOf(prepared.plan).execute({
          variables: prepared.coerced,
          context: deps.createContext(caller, turns),
        });
        const done = isPromise(result) ? await withDeadline(deps, result, { kind, turns }) : result;
        // Nobody is there to read what became of it.
        if (turns.ended) return { errors: [refusals.tooSlow(kind).toJSON()] };
        return answer(done, caller, mask);
      } catch (error) {
        return { errors: mask([error], caller, 'execute') };
      }
    },
    open(prepared, caller, after) {
      const { node, stream, definition } = streamOf(schema, prepared.plan);
      const args = getArgumentValues(definition, node, prepared.coerced);
      const place = definition.args.find((argument) => argument.name === 'after');
      if (after !== undefined && isScalarType(place?.type)) args['after'] = place.type.parseValue(after);
      return stream.open(args, deps.createContext(caller));
    },
    runEvent(prepared, caller, event) {
      const { node } = streamOf(schema, prepared.plan);
      const failed = (error: unknown): Answer => ({ errors: mask([error], caller, 'execute') });
      try {
        const turns = readTurns();
        const result = compiledOf(prepared.plan).execute({
          variables: prepared.coerced,
          context: deps.createContext(caller, turns),
          rootValue: { [node.name.value]: event.value },
        });
        if (!isPromise(result)) return answer(result, caller, mask);
        return withDeadline(deps, result, { kind: 'subscription', turns }).then(
          (value) => answer(value, caller, mask),
          failed,
        );
      } catch (error) {
        return failed(error);
      }
    },
    shareKey({ plan, variables }, caller) {
      // Absent takes the default, null does not.
      const read = plan.selectionVariables.map((name) =>
        Object.hasOwn(variables, name) ? [variables[name]] : [],
      );
      // What reads anything personal is shared among the operations of one principal at most.
      const whose = plan.personal ? `${caller.actor.classKey}\0${caller.actor.id}` : caller.actor.classKey;
      return `${plan.planId}\0${whose}\0${read.length === 0 ? '' : canonicalJson(read)}`;
    },
  };
}

function chosen(
  operations: ReadonlyMap<string, OperationPlan>,
  name: string | null | undefined,
): OperationPlan | GraphQLError {
  if (name !== null && name !== undefined && name !== '') {
    return operations.get(name) ?? refusals.badRequest('The document has no operation of that name.');
  }
  const [only, more] = operations.values();
  if (only === undefined) return refusals.badRequest('The document has no operation.');
  if (more !== undefined) {
    return refusals.badRequest('The document has several operations: say which by `operationName`.');
  }
  return only;
}

const ROOT_NAMES = { query: 'Query', mutation: 'Mutation', subscription: 'Subscription' } as const;
const OPEN_TO_ALL: ReadonlySet<string> = new Set(['__typename', '__schema', '__type']);

/** By the action table alone, before anything runs: which objects the caller may see is decided where they are read. */
function forbidden(plan: OperationPlan, caller: Caller): GraphQLError | undefined {
  for (const field of plan.rootFields) {
    if (OPEN_TO_ALL.has(field.name.value)) continue;
    const coordinate = `${ROOT_NAMES[plan.kind]}.${field.name.value}`;
    const action: Action | undefined = Object.hasOwn(OPERATIONS, coordinate)
      ? OPERATIONS[coordinate]
      : undefined;
    // A root field without a row is nobody's: a guard test names it before it ships.
    if (action === undefined || !mayEver(caller.actor, action)) {
      const roles =
        action === undefined ? '' : ` It takes one of the roles ${ACTIONS[action].roles.join(', ')}.`;
      return refusals.forbidden(`You may not use \`${coordinate}\`.${roles}`);
    }
  }
  return undefined;
}

function streamOf(schema: GraphQLSchema, plan: OperationPlan) {
  const node = plan.rootFields[0];
  const definition = node && schema.getSubscriptionType()?.getFields()[node.name.value];
  const stream = definition?.extensions['stream'];
  if (!node || !definition || !stream) throw new Error('a subscription field without a stream definition');
  return { node, definition, stream: stream as StreamDefinition }; // extensions are untyped; the graph's guard test checks them
}

function answer(result: ExecutionResult, caller: Caller, mask: Pipeline['mask']): Answer {
  if (result.errors === undefined) return { data: result.data };
  const errors = mask(result.errors, caller, 'execute');
  return result.data === undefined ? { errors } : { errors, data: result.data };
}

/** An execution cannot be stopped: after the deadline its result is dropped, and nothing is read for it any more. */
function withDeadline<T>(
  { clock, limits }: Pick<PipelineDeps, 'clock' | 'limits'>,
  work: Promise<T>,
  { kind, turns }: { readonly kind: OperationKind; readonly turns: ReadTurns },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limits.executionMs, () => {
      reject(refusals.tooSlow(kind));
      turns.end();
    });
    work.then(resolve, reject).finally(cancel);
  });
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise;
}
