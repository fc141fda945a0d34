import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { isTemplate, type Template } from '@svc/contract';

const RECIPES = new URL('../../images/', import.meta.url);

/** The templates that have a recipe, of which the shared service builds the images. */
export async function builtTemplates(): Promise<Template[]> {
  const names = (await readdir(RECIPES)).filter(isTemplate);
  return names.filter((name) => existsSync(new URL(`${name}/image.json`, RECIPES)));
}
