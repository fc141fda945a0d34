export { type LoadedImage, loadPicture, readResource } from './load-picture.ts';
export { prepareDrawing } from './prepare.ts';
