/**
 * The link between a worker and the agent runtime in a guest: TCP to the guest's agent port, with one JSON object per
 * line in both directions. The runtime accepts one connection at a time; a new one with the right token replaces the
 * old. These are types only: each side validates its input, and the worker never trusts the guest.
 */

import type { Agent } from '../agents.ts';
import { LIMITS } from '../limits.ts';
import type { AppJson } from '../sandboxes/app-json.ts';
import type { AgentFrame, ForwardedFrame } from '../sessions/frames.ts';
import type { LlmDialect } from '../vendors.ts';

/** The key that agents send. The gateway replaces it with the real one. */
export const PLACEHOLDER_LLM_KEY = 'svc-llm-gateway';
/** User and home directory of agents. A resume restores the home directory. */
export const AGENT_USER = 'agent';
export const AGENT_HOME = '/home/agent';
/** The file with the agent's standard error, for `logs`. */
export const AGENT_LOG_PATH = '/var/log/svc/agent.log';
/** The archive with the files of a resumed session, which the worker writes before it configures the runtime. */
export const RESTORE_ARCHIVE = '/var/lib/svc/restore.tar';
/** The archive with the agent's files, which the runtime writes for the worker to fetch. */
export const SAVED_ARCHIVE = '/var/lib/svc/saved.tar';
/** Maximum length of a line of the runtime. */
export const AGENT_LINK_LINE_BYTES = 8 * 1024 * 1024;
/**
 * Maximum length of a line of the worker: an environment, of which JSON may escape each byte as six, a conversation as
 * the runtime sent it, and as much again for all the rest.
 */
export const AGENT_LINK_WORKER_LINE_BYTES = 6 * LIMITS.sessionEnvBytes + 2 * AGENT_LINK_LINE_BYTES;

/** The model that an agent uses, and the way to it. */
export interface AgentLlm {
  readonly model: string;
  readonly dialect: LlmDialect;
  /** Base of the gateway with the dialect, and for a customer's own endpoint a digest: `http://172.30.0.1:7200/anthropic`. */
  readonly gateway: string;
}

/** The configuration of an agent runtime, sent once with `configure`. */
export interface AgentSetup extends AgentLlm {
  readonly mode: 'session' | 'one_shot';
  readonly agent: Agent;
  readonly wireVersion: 1 | 2;
  readonly app?: AppJson;
  /** Values of bundles and `env_vars`, for the processes of the agent. */
  readonly env: Readonly<Record<string, string>>;
  readonly task?: string;
  readonly resumeId?: string;
  /** The conversation of the last `state` message. */
  readonly conversation?: string;
  /** Whether {@link RESTORE_ARCHIVE} holds the agent's files. */
  readonly restoreFiles: boolean;
}

/** A request for pictures of the display. */
export interface CaptureRequest {
  /** Names the request in its answer. */
  readonly id: number;
  /** Whether to send the whole display, changed or not. */
  readonly whole: boolean;
  /** Quality of the pictures, 20 to 90. */
  readonly quality: number;
}

/** From the worker to the runtime. */
export type WorkerMessage =
  /** The first message, sent once: sets the token for every later connection. Answered by `configured`. */
  | { readonly type: 'configure'; readonly token: string; readonly setup: AgentSetup }
  /** The first message on every later connection. Answered by `attached`, then the messages after number `after`. */
  | { readonly type: 'attach'; readonly token: string; readonly after: number }
  /** Everything up to message `n` is stored: the runtime may discard it. */
  | { readonly type: 'ack'; readonly n: number }
  /** A validated client frame. `c` increases by one; the runtime skips a number that it has seen. */
  | { readonly type: 'client'; readonly c: number; readonly frame: ForwardedFrame }
  /** New values: `env` for processes that start from now on, `llm` from the next task on. What is absent stays. */
  | {
      readonly type: 'env';
      readonly env?: Readonly<Record<string, string>>;
      readonly llm?: AgentLlm;
    }
  /**
   * Asks for what has changed on the display since the last `captured` of this session, or for all of it: answered by
   * `captured` as soon as there is something. It replaces an earlier request that is not answered yet.
   */
  | ({ readonly type: 'capture' } & CaptureRequest)
  /** Withdraws a request that is not answered yet. */
  | { readonly type: 'capture_stop' }
  /** The sandbox is about to end: save now and answer with `state`. */
  | { readonly type: 'save' }
  /** Warms up an idle runtime: runs the code paths of `configure` and keeps nothing. Answered by `rehearsed`. */
  | { readonly type: 'rehearse'; readonly token: string; readonly setup: AgentSetup };

/** From the runtime to the worker. Numbered messages are resent after a reconnect until acknowledged. */
export type GuestMessage =
  | { readonly type: 'configured' }
  | { readonly type: 'attached'; readonly c: number }
  | { readonly type: 'rehearsed' }
  | { readonly type: 'received'; readonly c: number }
  /** The answer to `capture`, sent once: `update` is a `ViewUpdate` in base64. */
  | { readonly type: 'captured'; readonly id: number; readonly update: string }
  /** `image`: the picture, in base64, that a client's `tool_call` asked for; only with a `tool_result`. */
  | {
      readonly type: 'frame';
      readonly n: number;
      readonly frame: AgentFrame;
      readonly image?: string;
    }
  /**
   * The turn has ended: the state to save before clients receive the frames after it (`task_completed`). `files` means
   * that {@link SAVED_ARCHIVE} has changed since the last time.
   */
  | {
      readonly type: 'state';
      readonly n: number;
      readonly conversation: string;
      readonly files: boolean;
    }
  /** A one-shot agent has ended. */
  | { readonly type: 'exited'; readonly n: number; readonly exitCode: number };
