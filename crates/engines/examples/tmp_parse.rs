fn main(){ for a in std::env::args().skip(1) { let b=std::fs::read(&a).unwrap(); println!("{a}\n   {:?}", wicketgate_engines::parse(&b,None)); } }
