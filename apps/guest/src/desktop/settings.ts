import { DESKTOP_SIZE } from '@svc/contract';

/** Where a desktop is. */
export interface DesktopSettings {
  /** Name of the X display. */
  readonly display: string;
  /** Address of the UI-element detection server. */
  readonly server: string;
  /** Directory in which each supervised program counts its starts. */
  readonly starts: string;
  /** Size of the display in pixels. */
  readonly width: number;
  readonly height: number;
}

/** The desktop of a sandbox, as the recipe of the template `cua` starts it. */
export const SANDBOX_DESKTOP: DesktopSettings = {
  display: ':0',
  server: 'http://127.0.0.1:7310',
  starts: '/run/desktop/starts',
  ...DESKTOP_SIZE,
};
