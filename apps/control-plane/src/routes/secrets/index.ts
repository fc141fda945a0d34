import type { Route } from '../../services.ts';
import { createSecretBundle } from './create.ts';
import { deleteSecretBundle } from './delete.ts';
import { getSecretBundle } from './get.ts';
import { listSecretBundles } from './list.ts';
import { rotateSecretBundle } from './rotate.ts';

export const secretRoutes: readonly Route[] = [
  createSecretBundle,
  listSecretBundles,
  getSecretBundle,
  rotateSecretBundle,
  deleteSecretBundle,
];
