import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Secret } from '../secret.ts';

export interface TracingOptions {
  /** Base URL of the collector, to which `/v1/traces` is added. Undefined: nothing is recorded. */
  readonly endpoint: string | undefined;
  /** Sent with each export: the credentials for the collector. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** The share of requests from outside that are recorded, from 0 to 1. */
  readonly ratio: number;
  /** `control-plane`, `runtime` or `worker`. */
  readonly component: string;
  /** What distinguishes this process from others of the component. Default: a random id. */
  readonly instance?: string | undefined;
  readonly version?: string | undefined;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly registry: Registry;
  /** Overrides of {@link EXPORT_BOUNDS}, for tests. */
  readonly bounds?: Partial<ExportBounds>;
}

/** Limits of the export. Times are in milliseconds. */
export interface ExportBounds {
  /** Spans that wait. Later ones are dropped. */
  readonly queue: number;
  /** Spans in one request to the collector. */
  readonly batch: number;
  /** The longest that a span waits for others. */
  readonly delayMs: number;
  /** For an export with its retries. */
  readonly exportMs: number;
  /** For the last exports at the end of the process. */
  readonly closeMs: number;
}

export const EXPORT_BOUNDS: ExportBounds = {
  queue: 2_048,
  batch: 512,
  delayMs: 2_000,
  exportMs: 5_000,
  closeMs: 3_000,
};
