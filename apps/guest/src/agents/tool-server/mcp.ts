import { z } from 'zod';
import {
  type AgentTool,
  failed,
  INTERRUPTED_RESULT,
  outcomeOf,
  type ToolOutcome,
} from '../tools/tool.ts';

/** Supported versions of the protocol, newest first. https://modelcontextprotocol.io/specification/versioning */
const VERSIONS = ['2025-11-25', '2025-06-18'] as const;

/** Codes of JSON-RPC. */
export const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

const Id = z.union([z.string(), z.number()]);
const Message = z.object({
  jsonrpc: z.literal('2.0'),
  id: Id.optional(),
  method: z.string(),
  params: z.unknown().optional(),
});
const Initialize = z.object({ protocolVersion: z.string() });
const Call = z.object({ name: z.string(), arguments: z.unknown().optional() });
const Cancelled = z.object({ requestId: Id });

type RequestId = z.infer<typeof Id>;

/** A response of JSON-RPC. */
export type Response = { readonly jsonrpc: '2.0'; readonly id: RequestId | null } & (
  | { readonly result: object }
  | { readonly error: { readonly code: number; readonly message: string } }
);

/** The response that reports an error of the protocol. */
export function errorResponse(code: number, message: string, id: RequestId | null = null) {
  return { jsonrpc: '2.0', id, error: { code, message } } as const;
}

/** The part of the Model Context Protocol that offers tools, for any number of clients. */
export class McpTools {
  readonly #tools: readonly AgentTool[];
  /** The running calls, by client and id. */
  readonly #calls = new Map<string, AbortController>();
  /** The signal of the newest task. */
  #task = new AbortController().signal;

  constructor(tools: readonly AgentTool[]) {
    this.#tools = tools;
  }

  /** Calls end when `signal` aborts, those that arrive later too, until this is called again. */
  duringTask(signal: AbortSignal): void {
    this.#task = signal;
  }

  /**
   * Handles a message of a client. Returns the response; undefined for a notification, and for a call that the client has
   * cancelled or whose `gone` has aborted. Never rejects.
   */
  async handle(client: string, message: unknown, gone: AbortSignal): Promise<Response | undefined> {
    const { data } = Message.safeParse(message);
    if (data === undefined) return errorResponse(INVALID_REQUEST, 'This is no request of MCP.');
    const { id, method, params } = data;
    if (id === undefined) {
      if (method === 'notifications/cancelled') this.#cancel(client, params);
      return undefined;
    }
    const result = (value: object): Response => ({ jsonrpc: '2.0', id, result: value });
    if (method === 'initialize') return result(initialized(params));
    if (method === 'ping') return result({});
    if (method === 'tools/list') return result({ tools: this.#tools.map(describe) });
    if (method !== 'tools/call') {
      return errorResponse(METHOD_NOT_FOUND, `There is no method ${method}.`, id);
    }
    const call = Call.safeParse(params).data;
    const tool = this.#tools.find(({ name }) => name === call?.name);
    if (tool === undefined) {
      return errorResponse(INVALID_PARAMS, `There is no tool ${call?.name} here.`, id);
    }
    const outcome = await this.#run(keyOf(client, id), tool, call?.arguments ?? {}, gone);
    return outcome === undefined ? undefined : result(resultOf(outcome));
  }

  /** Undefined when the client no longer waits for the outcome. */
  async #run(
    key: string,
    tool: AgentTool,
    input: unknown,
    gone: AbortSignal,
  ): Promise<ToolOutcome | undefined> {
    const cancelled = new AbortController();
    const unwanted = AbortSignal.any([cancelled.signal, gone]);
    const task = this.#task;
    const signal = AbortSignal.any([unwanted, task]);
    this.#calls.set(key, cancelled);
    try {
      signal.throwIfAborted();
      return await tool.run(input, signal);
    } catch (error) {
      if (unwanted.aborted) return undefined;
      return task.aborted ? failed(INTERRUPTED_RESULT) : outcomeOf(error);
    } finally {
      if (this.#calls.get(key) === cancelled) this.#calls.delete(key);
    }
  }

  #cancel(client: string, params: unknown): void {
    const { data } = Cancelled.safeParse(params);
    if (data !== undefined) this.#calls.get(keyOf(client, data.requestId))?.abort();
  }
}

/** Clients number their requests independently of each other. */
function keyOf(client: string, id: RequestId): string {
  return JSON.stringify([client, id]);
}

function initialized(params: unknown) {
  const wanted = Initialize.safeParse(params).data?.protocolVersion;
  return {
    protocolVersion: VERSIONS.find((version) => version === wanted) ?? VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: { name: 'svc', version: '1' },
  };
}

function describe({ name, description, input }: AgentTool) {
  return { name, description, inputSchema: z.toJSONSchema(input, { io: 'input' }) };
}

function resultOf({ text, isError, image }: ToolOutcome) {
  const content: object[] = [{ type: 'text', text }];
  if (image !== undefined) {
    content.push({ type: 'image', data: image.data, mimeType: image.mediaType });
  }
  return { content, isError };
}
