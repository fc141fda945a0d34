const colours = ['#e76f51', '#f4a261', '#e9c46a', '#2a9d8f', '#264653'];
let from = -Math.PI / 2;
for (const [index, share] of [0.3, 0.25, 0.2, 0.15, 0.1].entries()) {
  const to = from + share * 2 * Math.PI;
  ctx.beginPath();
  ctx.moveTo(160, 120);
  ctx.arc(160, 120, 100, from, to);
  ctx.closePath();
  ctx.fillStyle = colours[index];
  ctx.fill();
  from = to;
}
