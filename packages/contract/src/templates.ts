/** Sandbox templates: the images a sandbox can be made from. */

export const TEMPLATES = ['standard', 'browser', 'cua', 'canvas'] as const;
export type Template = (typeof TEMPLATES)[number];

/** Templates that sessions accept. */
export const SESSION_TEMPLATES = ['standard', 'browser', 'cua'] as const satisfies Template[];
export type SessionTemplate = (typeof SESSION_TEMPLATES)[number];

/** Whether `value` names a template of the service; its image may still not be built on any worker. */
export function isTemplate(value: string): value is Template {
  return (TEMPLATES as readonly string[]).includes(value);
}

/** Whether sessions accept this template. */
export function isSessionTemplate(value: string): value is SessionTemplate {
  return (SESSION_TEMPLATES as readonly string[]).includes(value);
}
