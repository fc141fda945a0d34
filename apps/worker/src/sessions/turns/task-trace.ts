import {
  currentOrigin,
  type RequestScope,
  type SpanAttributes,
  type TraceOrigin,
} from '@svc/service-kit/tracing';

/**
 * The spans of an agent's tasks. A task belongs to the trace of the client that asked for it: the one that last sent a task
 * or, if none did, the one that started the agent.
 */
export class TaskTrace {
  readonly #attributes: SpanAttributes;
  /** The request that starts the agent. */
  readonly #start: TraceOrigin | undefined = currentOrigin();
  #asked: TraceOrigin | undefined;
  #task: RequestScope | undefined;

  /** To be created while the request is served that starts the agent. */
  constructor(attributes: SpanAttributes) {
    this.#attributes = attributes;
  }

  /** Notes that a client sent a task. */
  noteAsked(origin: TraceOrigin | undefined): void {
    this.#asked = origin;
  }

  noteBegin(): void {
    if (this.#task !== undefined) return;
    const origin = this.#asked ?? this.#start;
    this.#task = origin?.begin({
      name: 'agent task',
      kind: 'internal',
      attributes: this.#attributes,
    });
  }

  /** Notes the end of the task, with the status that the agent reports. */
  noteEnd(status: string): void {
    this.#task?.set({ 'svc.task_status': status });
    this.#task?.end();
    this.#task = undefined;
  }

  /** Runs work for the task, such as its commit. */
  run<T>(work: () => T): T {
    return this.#task === undefined ? work() : this.#task.run(work);
  }

  /** Where the agent's requests to its model belong. */
  get origin(): TraceOrigin | undefined {
    return this.#task === undefined ? this.#start : this.#task.origin;
  }
}
