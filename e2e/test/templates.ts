import { readdir } from 'node:fs/promises';
import { isTemplate, type Template } from '@svc/contract';

const RECIPES = new URL('../../images/', import.meta.url);

/** The templates that have a recipe, of which the shared service builds the images. */
export async function builtTemplates(): Promise<Template[]> {
  return (await readdir(RECIPES)).filter(isTemplate);
}
