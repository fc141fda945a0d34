import { isTemplate, TEMPLATES, type Template } from '@svc/contract';
import { ArgumentError } from './argument-error.ts';

/** A parser of template names. */
export function parseTemplate(text: string): Template {
  if (isTemplate(text)) return text;
  throw new ArgumentError(
    `"${text}" is not a template`,
    `use one of ${TEMPLATES.join(', ')}`,
    'standard',
  );
}
