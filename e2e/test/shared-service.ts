import './global-setup.ts';
import { inject } from 'vitest';
import { Access } from './access.ts';

/** Access to the service that all test files share. */
export const shared = new Access(inject('service'));
