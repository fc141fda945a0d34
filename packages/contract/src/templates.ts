/** Sandbox templates: the images from which a sandbox can be created. */

export const TEMPLATES = ['standard', 'browser', 'cua', 'canvas'] as const;
export type Template = (typeof TEMPLATES)[number];

/** Templates that sessions accept. */
export const SESSION_TEMPLATES = ['standard', 'browser', 'cua'] as const satisfies Template[];
export type SessionTemplate = (typeof SESSION_TEMPLATES)[number];

/** Whether `value` is the name of a template. No worker may have built its image yet. */
export function isTemplate(value: string): value is Template {
  return (TEMPLATES as readonly string[]).includes(value);
}

/** Whether sessions accept this template. */
export function isSessionTemplate(value: string): value is SessionTemplate {
  return (SESSION_TEMPLATES as readonly string[]).includes(value);
}

/** Size of the display of a desktop, in pixels. */
export const DESKTOP_SIZE = { width: 1280, height: 800 } as const;

/** Whether sandboxes of this template have a desktop, which clients of a session may control. */
export function hasDesktop(template: string): boolean {
  return template === 'cua';
}
