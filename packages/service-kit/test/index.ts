export { freePort, freePorts } from './free-ports.ts';
export { insideEdges, outsideEdges } from './range-edges.ts';
