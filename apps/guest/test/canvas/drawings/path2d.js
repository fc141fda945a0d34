const heart = new Path2D(
  'M 160 210 C 60 140 20 90 60 50 C 100 10 150 40 160 80 C 170 40 220 10 260 50 C 300 90 260 140 160 210 Z',
);
ctx.fillStyle = '#e5383b';
ctx.fill(heart);
const small = new Path2D();
small.addPath(heart, new DOMMatrix([0.4, 0, 0, 0.4, 96, 70]));
ctx.strokeStyle = 'white';
ctx.lineWidth = 3;
ctx.stroke(small);
