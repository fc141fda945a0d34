import { AsyncLocalStorage } from 'node:async_hooks';
import { REQUEST_ID_HEADER } from '../http/request-id.ts';
import { formatTraceparent, TRACEPARENT_HEADER } from './traceparent.ts';
import type { SpanAttributes, SpanStart, TraceContext, TraceSpan, Tracing } from './tracing.ts';

/** Spans right below one request or task. An agent could add any number to its task. */
const MAX_SPANS = 128;

/** The spans that may still be added below a request or task. */
interface SpanBudget {
  left: number;
}

/** Where code runs: in which request or task, and there in which span. */
interface Position {
  readonly scope: RequestScope;
  /** Undefined for the span of the scope itself. */
  readonly span: TraceSpan | undefined;
}

const positions = new AsyncLocalStorage<Position>();

/**
 * A request, or another piece of work with a beginning and an end, as all code knows it that serves it. It follows the
 * asynchronous calls. What goes on after its end, such as a loop that it started, no longer belongs to it.
 */
export class RequestScope {
  readonly requestId: string;
  readonly #position: Position = { scope: this, span: undefined };
  #tracing: Tracing | undefined;
  #span: TraceSpan | undefined;
  #traceId: string | undefined;
  readonly #budget: SpanBudget = { left: MAX_SPANS };
  #ended = false;
  #onTrusted: (() => void) | undefined;

  constructor(requestId: string) {
    this.requestId = requestId;
  }

  /** Whether its work is done. */
  get isOver(): boolean {
    return this.#ended;
  }

  /** The trace of which it is a part, if any, recorded here or not. */
  get traceId(): string | undefined {
    return this.#traceId;
  }

  /** Runs `task`, and everything that it starts, in this scope. */
  run<T>(task: () => T): T {
    return positions.run(this.#position, task);
  }

  /** Names the trace of the caller, which is not recorded here. */
  note(traceId: string): void {
    this.#traceId = traceId;
  }

  /** Begins the span of this scope. */
  record(tracing: Tracing, start: SpanStart): void {
    this.#tracing = tracing;
    this.#span = tracing.start(start);
    this.#traceId = this.#span.context.traceId;
  }

  /** Sets what happens once the caller has proved to be a component of the service, see {@link trustCaller}. */
  whenTrusted(act: () => void): void {
    this.#onTrusted = act;
  }

  trust(): void {
    this.#onTrusted?.();
    this.#onTrusted = undefined;
  }

  /** Adds to its span. */
  set(attributes: SpanAttributes): void {
    this.#span?.set(attributes);
  }

  /** Marks its span as failed. */
  fail(error: unknown): void {
    this.#span?.fail(error);
  }

  /** Ends it and its span. */
  end(): void {
    this.#ended = true;
    this.#onTrusted = undefined;
    this.#span?.end();
    this.#span = undefined;
  }

  /** Starts a span below `parent`. Undefined when nothing is recorded or there are too many. */
  child(parent: TraceSpan | undefined, start: Omit<SpanStart, 'parent'>): TraceSpan | undefined {
    const tracing = this.#tracing;
    const above = (parent ?? this.#span)?.context;
    if (this.#ended || tracing === undefined || above === undefined) return undefined;
    return spend(this.#budget) ? tracing.start({ ...start, parent: above }) : undefined;
  }

  /** The span in which calls to other components are made. */
  contextIn(span: TraceSpan | undefined): TraceContext | undefined {
    return (span ?? this.#span)?.context;
  }

  /** Where work goes on from its span, see {@link currentOrigin}. */
  get origin(): TraceOrigin | undefined {
    return this.originIn(undefined);
  }

  originIn(span: TraceSpan | undefined): TraceOrigin | undefined {
    const context = this.contextIn(span);
    if (this.#ended || this.#tracing === undefined || context === undefined) return undefined;
    return new TraceOrigin(this.#tracing, this.requestId, context, this.#budget);
  }
}

/** A position in a recorded trace, from which work goes on that outlives its request, such as the tasks of a session. */
export class TraceOrigin {
  readonly #tracing: Tracing;
  readonly #requestId: string;
  readonly #parent: TraceContext;
  readonly #budget: SpanBudget;

  constructor(tracing: Tracing, requestId: string, parent: TraceContext, budget: SpanBudget) {
    this.#tracing = tracing;
    this.#requestId = requestId;
    this.#parent = parent;
    this.#budget = budget;
  }

  /** Begins a piece of work with the request id of its origin. Undefined when the trace has too many spans. */
  begin(start: Omit<SpanStart, 'parent'>): RequestScope | undefined {
    if (!spend(this.#budget)) return undefined;
    const scope = new RequestScope(this.#requestId);
    scope.record(this.#tracing, { ...start, parent: this.#parent });
    return scope;
  }
}

function spend(budget: SpanBudget): boolean {
  if (budget.left <= 0) return false;
  budget.left -= 1;
  return true;
}

/** Where work can go on from here after its request has ended. Undefined when nothing is recorded. */
export function currentOrigin(): TraceOrigin | undefined {
  const position = positions.getStore();
  return position?.scope.originIn(position.span);
}

/**
 * Continues the trace of the caller with its decision whether to record it. For authenticated components of the service
 * only: a stranger who decides could make the operator pay for any number of spans.
 */
export function trustCaller(): void {
  positions.getStore()?.scope.trust();
}

/** The headers by which a call to another component of the service belongs to the current request. */
export function callHeaders(): Record<string, string> {
  const position = positions.getStore();
  if (position === undefined || position.scope.isOver) return {};
  const context = position.scope.contextIn(position.span);
  return {
    [REQUEST_ID_HEADER]: position.scope.requestId,
    ...(context === undefined ? {} : { [TRACEPARENT_HEADER]: formatTraceparent(context) }),
  };
}

/** What log lines say of the current request. */
export function currentRequest():
  | { readonly requestId: string; readonly traceId?: string | undefined }
  | undefined {
  const scope = positions.getStore()?.scope;
  return scope === undefined || scope.isOver ? undefined : scope;
}

/**
 * Runs `task` in a span of its own below the current one, from which {@link callHeaders} follow. It costs next to nothing
 * when nothing is recorded. `task` gets undefined then.
 */
export async function inSpan<T>(
  start: Omit<SpanStart, 'parent'>,
  task: (span: TraceSpan | undefined) => Promise<T>,
): Promise<T> {
  const position = positions.getStore();
  const span = position?.scope.child(position.span, start);
  if (position === undefined || span === undefined) return task(undefined);
  try {
    return await positions.run({ scope: position.scope, span }, () => task(span));
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}
