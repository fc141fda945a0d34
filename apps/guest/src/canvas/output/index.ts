export { encode } from './encode.ts';
