/**
 * deictic, our own agent.
 *
 * - `model/`         one call of a model: the vendors' dialects, deadlines, retries, what failures mean
 * - `conversation/`  what was said: kept valid, kept short, written down and read again
 * - `tools/`         what the model can have done
 * - `loop/`          model and tools in turns, until a task is done
 * - `team/`          one agent, or a coordinator and the agents of an app
 */

import type { StartAgent } from '../agent.ts';
import { Deictic } from './deictic.ts';
import { DEFAULT_OPTIONS } from './options.ts';

export { warmDeictic } from './warm.ts';

/** Starts deictic. A conversation that cannot be read is logged, and a new one begun. */
export const startDeictic: StartAgent = async (context) => new Deictic(context, DEFAULT_OPTIONS);
