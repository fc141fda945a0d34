ctx.fillStyle = '#222';
ctx.font = '30px sans-serif';
ctx.fillText('你好，世界', 15, 50);
ctx.fillText('こんにちは カタカナ', 15, 110);
ctx.fillText('안녕하세요', 15, 170);
ctx.font = '20px sans-serif';
ctx.fillText('混合 mixed テキスト', 15, 220);
