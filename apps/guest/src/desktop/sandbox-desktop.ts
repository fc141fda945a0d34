import { existsSync } from 'node:fs';
import { Desktop } from './desktop.ts';
import { SANDBOX_DESKTOP } from './settings.ts';

const PROGRAMS = '/usr/lib/svc/desktop';

let desktop: Desktop | undefined;

/** The desktop of this sandbox, the same for all callers; undefined if its template has none. */
export function sandboxDesktop(): Desktop | undefined {
  if (desktop === undefined && existsSync(PROGRAMS)) desktop = new Desktop(SANDBOX_DESKTOP);
  return desktop;
}

/** The variables by which programs find this sandbox's desktop; none if its template has no desktop. */
export function desktopEnvironment(): Record<string, string> {
  if (!existsSync(PROGRAMS)) return {};
  return {
    DISPLAY: SANDBOX_DESKTOP.display,
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/desktop/bus',
  };
}
