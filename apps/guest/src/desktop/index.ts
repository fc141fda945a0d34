/**
 * The desktop of a sandbox: its display, mouse and keyboard. The agent's tools, the frames of clients and the MCP
 * server all use {@link Desktop}.
 */
export { runClientCall } from './client-calls.ts';
export {
  Desktop,
  MAX_ELEMENTS,
  MAX_SCROLL_STEPS,
  MAX_TEXT_CHARS,
  MAX_WAIT_SECONDS,
  type MouseButton,
  type Point,
} from './desktop.ts';
export { DesktopError } from './desktop-error.ts';
export type { Box, Screenshot, UiElement, UiElements } from './element-server.ts';
export { desktopEnvironment, sandboxDesktop } from './sandbox-desktop.ts';
export type { DesktopSettings } from './settings.ts';
export { DESKTOP_TOOLKIT, type DesktopResult, type DesktopTool, runDesktopTool } from './tools.ts';
