import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A span as a collector gets it. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** `SERVER`, `CLIENT` or `INTERNAL`. */
  readonly kind: string;
  readonly isFailed: boolean;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The attributes of the process that recorded it. */
  readonly resource: Readonly<Record<string, unknown>>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The JSON of `ExportTraceServiceRequest`, as far as it is used. */
interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}

interface JsonSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
}

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT'];
const STATUS_ERROR = 2;

/** An OpenTelemetry collector that keeps the spans it gets, as OTLP over HTTP with JSON. */
export class OtlpCollector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** The bodies of the requests, as text. */
  readonly bodies: string[] = [];
  readonly headers: IncomingMessage['headers'][] = [];
  /** How it answers: 200 by default, another status, or never. */
  answer: number | 'never' = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response));
  }

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** The spans of one trace. */
  trace(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await buffer(request)).toString();
    this.bodies.push(body);
    this.headers.push(request.headers);
    if (this.answer === 'never') return;
    response.writeHead(this.answer, { 'content-type': 'application/json' }).end('{}');
    if (this.answer !== 200 || request.url !== '/v1/traces') return;
    const { resourceSpans } = JSON.parse(body) as ExportRequest;
    for (const { resource, scopeSpans } of resourceSpans) {
      const process = valuesOf(resource.attributes);
      const spans = scopeSpans.flatMap((scope) => scope.spans);
      this.spans.push(...spans.map((span) => receivedSpan(span, process)));
    }
  }
}

function receivedSpan(span: JsonSpan, resource: Readonly<Record<string, unknown>>): ReceivedSpan {
  const { name, traceId, spanId, parentSpanId } = span;
  return {
    name,
    traceId,
    spanId,
    parentSpanId: parentSpanId === '' ? undefined : parentSpanId,
    kind: KINDS[span.kind] ?? 'unknown',
    isFailed: span.status.code === STATUS_ERROR,
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    resource,
  };
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [kind, content] = Object.entries(value)[0] ?? [];
      return [key, kind === 'intValue' ? Number(content) : content];
    }),
  );
}
