import { AGENTS, LLM_VENDORS, SESSION_TEMPLATES, TEMPLATES } from '@svc/contract';
import { ArgumentError } from './parsers.ts';

export const parseAgent = oneOf(AGENTS, 'an agent', '--agent deictic');
export const parseVendor = oneOf(LLM_VENDORS, 'a vendor', '--vendor anthropic');
export const parseTemplate = oneOf(TEMPLATES, 'a template', 'standard');
export const parseSessionTemplate = oneOf(
  SESSION_TEMPLATES,
  'a template for sessions',
  '--template standard',
);

/** Returns a parser that accepts only these words. `kind` names them in the error, as in "an agent". */
function oneOf<const Word extends string>(
  words: readonly Word[],
  kind: string,
  example: string,
): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word !== undefined) return word;
    throw new ArgumentError(`"${text}" is not ${kind}`, `use one of ${words.join(', ')}`, example);
  };
}
