import { randomUUID } from 'node:crypto';
import { type ForwardedFrame, LIMITS, type ViewCalls } from '@svc/contract';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { DesktopView } from './desktop-view.ts';
import type { Viewer, Watcher } from './watcher.ts';

type ToolCall = Extract<ForwardedFrame, { type: 'tool_call' }>;
export type ViewCall = ToolCall & { readonly name: keyof ViewCalls };

const { viewFpsDefault, viewFpsMax, viewQualityMin, viewQualityDefault, viewQualityMax } = LIMITS;
const watchArguments = Compile(
  Type.Object(
    {
      fps: Type.Optional(Type.Integer({ minimum: 1, maximum: viewFpsMax })),
      quality: Type.Optional(Type.Integer({ minimum: viewQualityMin, maximum: viewQualityMax })),
    },
    { additionalProperties: false },
  ),
);
const PROBLEM = `fps is a whole number from 1 to ${viewFpsMax}, and quality one from ${viewQualityMin} to ${viewQualityMax}.`;

/** Whether a client's frame begins or ends its live view. */
export function isViewCall(frame: ForwardedFrame): frame is ViewCall {
  return frame.type === 'tool_call' && (frame.name === 'watch' || frame.name === 'unwatch');
}

/** The live view of one client. */
export class ClientView {
  readonly #view: DesktopView;
  readonly #watcher: Watcher;
  #isOpen = false;

  constructor(view: DesktopView, viewer: Viewer) {
    this.#view = view;
    this.#watcher = view.watcherOf(viewer);
  }

  /**
   * Carries out a call. `answer` sends the `tool_result` frame, to this client alone: ahead of the updates of a view. Returns
   * whether a view has begun.
   */
  run(
    { name, arguments: input, id = randomUUID() }: ViewCall,
    answer: (frame: Readonly<Record<string, unknown>>) => void,
  ): boolean {
    const result = { type: 'tool_result', id, is_error: false };
    if (name === 'unwatch') {
      this.end();
      answer({ ...result, content: 'Done.' });
      return false;
    }
    if (watchArguments.Check(input)) {
      const { fps = viewFpsDefault, quality = viewQualityDefault } = input;
      answer({ ...result, content: 'Updates of the view follow.' });
      this.#view.watch(this.#watcher, { fps, quality });
      this.#isOpen = true;
      return true;
    }
    answer({ ...result, content: PROBLEM, is_error: true });
    return false;
  }

  /** The client has drawn the update with this number. */
  acknowledge(number: number): void {
    this.#view.acknowledge(this.#watcher, number);
  }

  /** Ends the view. Returns whether one was open. */
  end(): boolean {
    this.#view.unwatch(this.#watcher);
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    return wasOpen;
  }
}
