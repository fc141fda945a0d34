/** What a client of a session with a desktop asks for, in `tool_call` frames. */

/** A button of the mouse. Default `left`. */
export type DesktopButton = 'left' | 'middle' | 'right';

/**
 * A picture of the display. The answer is a `tool_result` frame, followed by the picture as a binary message without a
 * number: it is shown once, and not again with `after_seq`.
 */
export type ScreenshotArguments = Readonly<Record<string, never>>;

/** Moves the mouse to a position, in pixels of the display from its top left corner, and uses it there. */
export interface MouseArguments {
  readonly action: 'move' | 'click' | 'double_click' | 'down' | 'up' | 'drag' | 'scroll';
  readonly x: number;
  readonly y: number;
  readonly button?: DesktopButton;
  /** Where a `drag` ends. */
  readonly to_x?: number;
  readonly to_y?: number;
  /** Steps of a `scroll` to the right and down; negative for the other ways. */
  readonly dx?: number;
  readonly dy?: number;
}

/** Types `text` where the focus is, or presses `keys`: combinations such as `ctrl+a`, separated by spaces. */
export interface KeyboardArguments {
  readonly action: 'type' | 'press';
  readonly text?: string;
  readonly keys?: string;
}

/** The names of a client's `tool_call` frames, and the arguments of each. */
export interface DesktopCalls {
  readonly screenshot: ScreenshotArguments;
  readonly mouse: MouseArguments;
  readonly keyboard: KeyboardArguments;
}
export type DesktopCallName = keyof DesktopCalls;

/**
 * Begins to show this client the desktop live, or changes how. The `tool_result` goes to this client alone and has no
 * number. The updates of the view follow it, see `view-update.ts`: first the whole display, later what has changed. The
 * client confirms each with a `view_ack` frame; while `LIMITS.viewUnacknowledged` of them are not confirmed, no other is
 * sent, and what changes meanwhile is sent once, as it is then.
 */
export interface WatchArguments {
  /** Most pictures a second, 1 to 5. Default 3. Fewer are sent when the client or its rate does not allow more. */
  readonly fps?: number;
  /**
   * Quality of the pictures, 20 to 90. Default 70. All who watch a desktop get the same pictures, in the highest quality
   * that one of them asks for.
   */
  readonly quality?: number;
}

/** The names of the `tool_call` frames by which a client watches the desktop, and the arguments of each. */
export interface ViewCalls {
  readonly watch: WatchArguments;
  /** Ends the view. Updates that are on the way may still arrive. */
  readonly unwatch: Readonly<Record<string, never>>;
}
