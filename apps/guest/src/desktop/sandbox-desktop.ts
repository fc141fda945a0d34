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
