export { drawPage } from './draw-page.ts';
