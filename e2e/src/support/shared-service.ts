import './global-setup.ts';
import { inject } from 'vitest';
import { Access } from './access.ts';

/** Access to the service that all tests of a run share. */
export const shared = new Access(inject('service'));
