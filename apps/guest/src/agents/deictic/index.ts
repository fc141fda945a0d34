/**
 * deictic, our own agent.
 *
 * - `model/`         a single model call: the vendors' dialects, time limits, retries, failures
 * - `conversation/`  the conversation: kept valid, kept short, saved and restored
 * - `tools/`         the tools that the model can call
 * - `loop/`          alternates between model and tools until a task is done
 * - `team/`          one agent, or a coordinator and the agents of an app
 */

import type { StartAgent } from '../agent.ts';
import { Deictic } from './deictic.ts';
import { DEFAULT_OPTIONS } from './options.ts';

export { warmDeictic } from './warm.ts';

/** Starts deictic. If the earlier conversation cannot be read, logs that and begins a new one. */
export const startDeictic: StartAgent = async (context) => new Deictic(context, DEFAULT_OPTIONS);
