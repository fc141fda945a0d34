ctx.lineWidth = 5;
for (const [index, dash] of [
  [10, 5],
  [20, 5, 5, 5],
  [2, 8],
  [30, 10, 5],
].entries()) {
  ctx.setLineDash(dash);
  ctx.lineDashOffset = index * 3;
  ctx.strokeStyle = `hsl(${index * 90}, 60%, 45%)`;
  ctx.strokeRect(20 + index * 15, 20 + index * 15, 280 - index * 30, 200 - index * 30);
}
