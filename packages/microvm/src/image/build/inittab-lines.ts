import type { Recipe } from '../recipe.ts';

/** The lines of /etc/inittab that start the services of a recipe. Init starts a service that has ended again a second later. */
export function inittabLines({ services = {} }: Pick<Recipe, 'services'>): string {
  return Object.values(services)
    .map((command) => `::respawn:${command}\n`)
    .join('');
}
