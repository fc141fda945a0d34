/**
 * The line between a worker and the agent runtime in a guest: TCP to the guest's agent port, one JSON object a
 * line, in both directions. The runtime takes one connection at a time; a new one with the right token replaces
 * the old. Types only: each side checks what it reads, and the guest is never believed.
 */

import type { Agent } from '../agents.ts';
import type { AppJson } from '../sandboxes/app-json.ts';
import type { AgentFrame, ClientFrame } from '../sessions/frames.ts';
import type { LlmDialect } from '../vendors.ts';

/** What agents send as their key: the gateway puts the real one in its place. */
export const PLACEHOLDER_LLM_KEY = 'svc-llm-gateway';
/** User and home directory of agents; the home directory is what a resume brings back. */
export const AGENT_USER = 'agent';
export const AGENT_HOME = '/home/agent';
/** Where the runtime keeps the agent's stderr, for `logs`. */
export const AGENT_LOG_PATH = '/var/log/svc/agent.log';
/** Where the worker puts the files of a resumed session before it configures the runtime. */
export const RESTORE_ARCHIVE = '/var/lib/svc/restore.tar';
/** Where the runtime puts the agent's files for the worker to fetch. */
export const SAVED_ARCHIVE = '/var/lib/svc/saved.tar';
/** Longest line on the link. */
export const AGENT_LINK_LINE_BYTES = 8 * 1024 * 1024;

/** Everything a runtime needs to run its agent; arrives once, with `configure`. */
export interface AgentSetup {
  readonly mode: 'session' | 'one_shot';
  readonly agent: Agent;
  readonly model: string;
  readonly dialect: LlmDialect;
  /** Base of the gateway with the dialect: `http://172.30.0.1:7200/anthropic`. */
  readonly gateway: string;
  readonly wireVersion: 1 | 2;
  readonly app?: AppJson;
  /** Values of bundles and `env_vars`, for processes that the agent starts. */
  readonly env: Readonly<Record<string, string>>;
  readonly task?: string;
  readonly resumeId?: string;
  /** The conversation as `state` last gave it. */
  readonly conversation?: string;
  /** Whether {@link RESTORE_ARCHIVE} holds the agent's files. */
  readonly restoreFiles: boolean;
}

/** From the worker to the runtime. */
export type WorkerMessage =
  /** First of all, once: sets the token that every later connection must name. Answered by `configured`. */
  | { readonly type: 'configure'; readonly token: string; readonly setup: AgentSetup }
  /** First on every later connection. Answered by `attached`, then what came after message `after`. */
  | { readonly type: 'attach'; readonly token: string; readonly after: number }
  /** Everything up to message `n` is kept: the runtime may forget it. */
  | { readonly type: 'ack'; readonly n: number }
  /** A client's frame, checked; `c` rises by one, a number seen before is left out. */
  | {
      readonly type: 'client';
      readonly c: number;
      readonly frame: Exclude<ClientFrame, { type: 'ping' }>;
    }
  /** New values for processes started from now on. */
  | { readonly type: 'env'; readonly env: Readonly<Record<string, string>> }
  /** The sandbox is about to end: save now, answer with `state`. */
  | { readonly type: 'save' }
  /** Before the owner comes: goes the way of `configure` and keeps nothing. Answered by `rehearsed`. */
  | { readonly type: 'rehearse'; readonly token: string; readonly setup: AgentSetup };

/** From the runtime to the worker. Numbered ones are sent again after a reconnect until acknowledged. */
export type GuestMessage =
  | { readonly type: 'configured' }
  | { readonly type: 'attached'; readonly c: number }
  | { readonly type: 'rehearsed' }
  | { readonly type: 'received'; readonly c: number }
  | { readonly type: 'frame'; readonly n: number; readonly frame: AgentFrame }
  /**
   * The turn is over: what has to be saved before the frames behind it (`task_completed`) are shown. `files` says
   * that {@link SAVED_ARCHIVE} is new since the last time.
   */
  | {
      readonly type: 'state';
      readonly n: number;
      readonly conversation: string;
      readonly files: boolean;
    }
  /** A one-shot agent has ended. */
  | { readonly type: 'exited'; readonly n: number; readonly exitCode: number };
