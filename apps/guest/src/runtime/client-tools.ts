import { randomUUID } from 'node:crypto';
import type { AgentFrame, ClientFrame } from '@svc/contract';
import { z } from 'zod';
import { type Desktop, DesktopError, runClientCall, type Screenshot } from '../desktop/index.ts';

type ToolCallFrame = Extract<ClientFrame, { type: 'tool_call' }>;

export interface ClientToolsOptions {
  /** Undefined in a template without one. */
  readonly desktop: Desktop | undefined;
  /** Sends a frame, with the picture that follows it. */
  readonly emit: (frame: AgentFrame, image?: Screenshot) => void;
  readonly drained: () => Promise<void>;
  /** Sends the error that there is no such tool. */
  readonly refuse: (id: string | undefined) => void;
  /** Reports a failure that is no fault of the client. */
  readonly onFault: (error: unknown) => void;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
}

/** The tools of the desktop that clients call. Each call is answered by a `tool_result` frame with its id. */
export class ClientTools {
  readonly #options: ClientToolsOptions;

  constructor(options: ClientToolsOptions) {
    this.#options = options;
  }

  /** Carries out a call. Calls take effect one after another. Never rejects. */
  async run({ id, name, arguments: input }: ToolCallFrame): Promise<void> {
    const { desktop, emit, drained, refuse, onFault, signal } = this.#options;
    const answer = { type: 'tool_result', id: id ?? randomUUID() } as const;
    try {
      if (desktop === undefined) return refuse(id);
      const call = runClientCall(desktop, { name, arguments: input }, signal);
      if (call === undefined) return refuse(id);
      const { text, image } = await call;
      emit({ ...answer, content: text, is_error: false }, image);
    } catch (error) {
      if (signal.aborted) return;
      const isExpected = error instanceof DesktopError || error instanceof z.ZodError;
      if (!isExpected) onFault(error);
      emit({ ...answer, content: problemOf(error), is_error: true });
    }
    await drained();
  }
}

function problemOf(error: unknown): string {
  if (error instanceof DesktopError) return error.message;
  if (error instanceof z.ZodError) return z.prettifyError(error);
  return 'The desktop has failed; the log of the agent says more.';
}
