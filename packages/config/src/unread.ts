import { closest } from './closest.ts';
import type { Environment } from './read.ts';
import { ALL_VARIABLES, CLIENT_VARIABLES } from './variables.ts';

const PREFIX = 'SVC_';

/** One problem for each `SVC_` variable with a value that neither the service nor the command line reads. */
export function unreadVariables(environment: Environment): string[] {
  const known = [...ALL_VARIABLES, ...CLIENT_VARIABLES].map(({ name }) => name);
  return Object.entries(environment)
    .filter(([name, value]) => name.startsWith(PREFIX) && value && !known.includes(name))
    .map(([name]) => problemOf(name, known))
    .sort();
}

function problemOf(name: string, known: readonly string[]): string {
  const meant = closest(name, known);
  return `${name} is not a setting; ${meant === undefined ? 'unset it' : `did you mean ${meant}?`}`;
}
