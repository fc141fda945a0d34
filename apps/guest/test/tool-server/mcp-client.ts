import type { ToolServer } from '../../src/agents/tool-server/index.ts';

/** The result of a tool call. */
export interface CallResult {
  readonly isError: boolean;
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly data?: string;
    readonly mimeType?: string;
  }[];
}

/** A client of a tool server, as the specification of MCP describes it. */
export class McpClient {
  readonly #server: Pick<ToolServer, 'url' | 'token'>;
  #session: string | undefined;
  #requests = 0;

  private constructor(server: Pick<ToolServer, 'url' | 'token'>) {
    this.#server = server;
  }

  static async connect(server: Pick<ToolServer, 'url' | 'token'>): Promise<McpClient> {
    const client = new McpClient(server);
    await client.request('initialize', { protocolVersion: '2025-06-18', capabilities: {} });
    await client.notify('notifications/initialized');
    return client;
  }

  /** The number of the latest request. */
  get lastId(): number {
    return this.#requests;
  }

  /** The result of a request. @throws an Error with the message of the server's error, or when the stream ends without one */
  async request(method: string, params: object = {}, signal?: AbortSignal): Promise<object> {
    this.#requests += 1;
    const id = this.#requests;
    const response = await this.post({ jsonrpc: '2.0', id, method, params }, {}, signal);
    this.#session ??= response.headers.get('mcp-session-id') ?? undefined;
    const events = await response.text();
    const [, data] = /^event: message\ndata: (.*)\n\n$/.exec(events) ?? [];
    if (data === undefined) throw new Error(`no answer: ${response.status} ${events}`);
    const answer = JSON.parse(data);
    if (answer.error !== undefined) throw new Error(answer.error.message);
    return answer.result;
  }

  async notify(method: string, params: object = {}): Promise<number> {
    const { status } = await this.post({ jsonrpc: '2.0', method, params });
    return status;
  }

  async tools(): Promise<{ name: string; description: string; inputSchema: object }[]> {
    const { tools } = (await this.request('tools/list')) as { tools: never[] };
    return tools;
  }

  async call(name: string, input: object = {}, signal?: AbortSignal): Promise<CallResult> {
    return (await this.request('tools/call', { name, arguments: input }, signal)) as CallResult;
  }

  /** Sends any body. */
  post(body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
    const session = this.#session === undefined ? {} : { 'mcp-session-id': this.#session };
    return fetch(this.#server.url, {
      method: 'POST',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        authorization: `Bearer ${this.#server.token}`,
        ...session,
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: signal ?? null,
    });
  }
}
