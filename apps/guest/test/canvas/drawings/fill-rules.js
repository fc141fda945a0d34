function star(x) {
  ctx.beginPath();
  for (let point = 0; point < 5; point += 1) {
    const angle = (point * 4 * Math.PI) / 5 - Math.PI / 2;
    ctx.lineTo(x + 70 * Math.cos(angle), 120 + 70 * Math.sin(angle));
  }
  ctx.closePath();
}
ctx.fillStyle = '#d62828';
star(80);
ctx.fill('nonzero');
star(240);
ctx.fill('evenodd');
